from sim.inputs.catalog import calibration_names, calibration_path, scenario_path


def test_shipped_files_are_found_by_name():
    assert "h100-llama-3.1-8b-eagle" in calibration_names()
    assert calibration_path("h100-llama-3.1-8b-eagle").is_file()


def test_only_names_are_names():
    for name in ("nothing", "", ".", "../pyproject", "calibrations/h100-llama-3.1-8b-eagle"):
        assert calibration_path(name) is None
        assert scenario_path(name) is None
